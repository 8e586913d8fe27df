/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stored-functions-priv.h - where the functions of a stored round come from
 *
 * `collect` writes the list beside the stacks if a destination is configured (function-list.h).
 */
#pragma once

#include "store-priv.h"
#include "uprof/intern.h"

/**
 * uprof_stored_functions_add: adds modules and sources to the names of an item's functions
 * @names: (inout): the names are those that the stacks of the item give
 *
 * A missing or damaged list adds nothing.
 *
 * Returns: false with %UPROF_ERROR_FAILED if the file cannot be read now
 */
bool uprof_stored_functions_add(const UprofStoreFolder *folder, const UprofStoreItem *item,
                                UprofNames *names, GError **error);
