/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * svg-files-priv.h - svg.css and svg.js, as embed.py has made them strings
 */
#pragma once

extern const char uprof_svg_css[];
extern const char uprof_svg_js[];
