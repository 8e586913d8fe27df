/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * svg-files-priv.h - the style sheet and the script of pictures, as embed.py has made them strings
 */
#pragma once

extern const char uprof_svg_css[];
extern const char uprof_svg_js[];
