/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * owner-check.h - checks whether other users can change a file or folder that the program relies on
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

/** UprofOwnerRule: allowed owners of a file or folder. Group and others may never write it. */
typedef enum {
    UPROF_OWNER_USER,         /* the user of this process */
    UPROF_OWNER_USER_OR_ROOT, /* that user or root */
    UPROF_OWNER_FOR_ROOT,     /* root, if this process runs as root; else every file is accepted */
} UprofOwnerRule;

/**
 * uprof_owner_is_safe:
 * @info: of the open file or folder, or of the path if nobody else can replace it
 * @user: effective user of this process, or another user whom the caller trusts
 */
bool uprof_owner_is_safe(const struct stat *info, UprofOwnerRule rule, uid_t user);

/**
 * uprof_owner_lets_others_replace: can any user replace the files in the folder?
 * @info: of the folder
 *
 * A sticky folder such as /tmp is fine: only the owner of a file can replace it there.
 */
bool uprof_owner_lets_others_replace(const struct stat *info);
