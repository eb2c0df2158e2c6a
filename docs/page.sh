#!/bin/sh
# A manual page: page.sh SCDOC <PAGE.scd. Its first line asks for tbl, as groff(1) and lintian expect of pages with tables.
printf '%s\n' "'\\\" t"
exec "$1"
