/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * child-command.h - a command of the user that runs while domains are sampled
 *
 * The command has the rights, the environment, the files and the signals of the caller, as if a
 * shell had started it.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/** UprofChild: a command; zero before it is started */
typedef struct {
    GPid pid;        /* 0: not started */
    bool has_ended;  /* @status is known */
    int exit_status; /* as a shell reports it: of a signal 128 and its number */
} UprofChild;

enum { UPROF_CHILD_NOT_FOUND = 127 }; /* the exit status for a command that does not exist */

/**
 * uprof_child_raise_files: raises the soft limit of open files, because each sampled vCPU needs
 * several descriptors. Commands get the old limit: programs that use select(2) need it.
 */
void uprof_child_raise_files(void);

/** uprof_child_is_there: could the command be started? Otherwise @error quotes its name */
bool uprof_child_is_there(char *const *words, GError **error);

/** uprof_child_start: starts the command; @words: its name and arguments, ends with %NULL */
bool uprof_child_start(UprofChild *child, char *const *words, GError **error);

/** uprof_child_has_ended: looks without waiting; false if the command was not started */
bool uprof_child_has_ended(UprofChild *child);

/** uprof_child_signal: sends a signal, if the command runs */
void uprof_child_signal(UprofChild *child, int number);

/** uprof_child_wait: waits until the command has ended. Returns: its exit status; 0: not started */
int uprof_child_wait(UprofChild *child);
