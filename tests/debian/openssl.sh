#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# openssl.sh - digests and signatures, for ever
while :; do
    openssl speed -seconds 1 sha256 rsa2048 ecdsap256 >/dev/null 2>&1
done
