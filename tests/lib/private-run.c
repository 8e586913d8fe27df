/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "private-run.h"

#include <ftw.h>
#include <glib.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <unistd.h>

static char *folder;

bool
private_run_enter(void)
{
    if (geteuid() == 0)
        return unshare(CLONE_NEWNS) == 0 &&
               mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") == 0;

    folder = g_dir_make_tmp("uprof-test-XXXXXX", NULL);
    return folder && g_setenv("XDG_RUNTIME_DIR", folder, TRUE);
}

static int
remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    return remove(path);
}

void
private_run_leave(void)
{
    if (folder)
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    g_clear_pointer(&folder, g_free);
}
