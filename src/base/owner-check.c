/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/owner-check.h"

bool
uprof_owner_is_safe(const struct stat *info, UprofOwnerRule rule, uid_t user)
{
    if (rule == UPROF_OWNER_FOR_ROOT && user != 0)
        return true;
    if (info->st_mode & (S_IWGRP | S_IWOTH))
        return false;
    return info->st_uid == user || (rule == UPROF_OWNER_USER_OR_ROOT && info->st_uid == 0);
}

bool
uprof_owner_lets_others_replace(const struct stat *info)
{
    return (info->st_mode & S_IWOTH) && !(info->st_mode & S_ISVTX);
}
