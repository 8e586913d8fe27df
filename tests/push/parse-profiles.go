// SPDX-License-Identifier: LGPL-2.1-or-later

// parse-profiles FOLDER - pprof's own parser reads all profiles in a folder
//
// Prints the sum of each value of each profile: "NAME samples/count=7 cpu/nanoseconds=70". Exits 1 if
// a profile is not valid.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/google/pprof/profile"
)

func describe(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	parsed, err := profile.Parse(file)
	if err != nil {
		return "", err
	}
	if err := parsed.CheckValid(); err != nil {
		return "", err
	}
	line := filepath.Base(path)
	for i, kind := range parsed.SampleType {
		sum := int64(0)
		for _, sample := range parsed.Sample {
			sum += sample.Value[i]
		}
		line += fmt.Sprintf(" %s/%s=%d", kind.Type, kind.Unit, sum)
	}
	return line, nil
}

func main() {
	paths, err := filepath.Glob(filepath.Join(os.Args[1], "*"))
	if err != nil || len(paths) == 0 {
		fmt.Fprintln(os.Stderr, "no profile in", os.Args[1])
		os.Exit(2)
	}
	sort.Strings(paths)
	code := 0
	for _, path := range paths {
		line, err := describe(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, path+":", err)
			code = 1
			continue
		}
		fmt.Println(line)
	}
	os.Exit(code)
}
