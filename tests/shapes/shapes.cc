// SPDX-License-Identifier: LGPL-2.1-or-later
//
// shapes.cc - exceptions, which unwind frames up to a caller, and objects, whose
// constructors, destructors and virtual functions the compiler calls or generates

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))

extern "C" int shape_throw(int n);

namespace {

volatile int sink;

struct Guard {
    ~Guard();
    int n;
};

NOINLINE
Guard::~Guard()
{
    sink = sink + n;
}

NOINLINE int
shape_refuse(int n)
{
    Guard guard = { n };

    if (n == 0)
        throw sink + 1;
    return guard.n;
}

NOINLINE int
shape_deeper(int n)
{
    return n == 0 ? shape_refuse(n) : shape_deeper(n - 1) + shape_refuse(n);
}

struct Base {
    virtual ~Base() {}
    virtual unsigned get(unsigned n) const = 0;
};

struct First : Base {
    unsigned get(unsigned n) const override { return n + 1; }
};

struct Second : Base {
    explicit Second(unsigned by) : by(by) {}
    unsigned get(unsigned n) const override { return n * by; }
    unsigned by;
};

NOINLINE unsigned
shape_apply(const std::function<unsigned(unsigned)> &function, unsigned n)
{
    return function(n) + 1;
}

NOINLINE unsigned
shape_strings(unsigned n)
{
    std::map<std::string, unsigned> counts;
    std::vector<std::string> words;

    for (unsigned i = 0; i < 6; i++)
        words.push_back(std::string(i % 3 * 10 + 1, 'a' + (char)((i + n) % 26)));
    std::sort(words.begin(), words.end());
    for (const auto &word : words)
        counts[word] += (unsigned)word.size();
    return counts.begin()->second + (unsigned)counts.size();
}

} // namespace

extern "C" NOINLINE unsigned
shape_objects(unsigned n)
{
    std::unique_ptr<Base> base;

    if (n % 2 == 0)
        base.reset(new First);
    else
        base.reset(new Second(n));
    return shape_apply([&](unsigned m) { return base->get(m) + shape_strings(m); }, n);
}

extern "C" NOINLINE int
shape_throw(int n)
{
    try {
        return shape_deeper(n);
    } catch (int number) {
        return number + n;
    }
}
