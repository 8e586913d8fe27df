/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fetch-report-priv.h - notices about downloads of symbol files
 */
#pragma once

#include "uprof/fetcher.h"
#include "uprof/notice.h"

/** uprof_fetch_report: says how many files were fetched, and why others were not, if any were
 * wanted */
void uprof_fetch_report(UprofFetcher *fetcher, const UprofNotices *notices);
