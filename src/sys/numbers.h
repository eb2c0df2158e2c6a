/*
 * System calls that an older C library's header lacks (musl 1.2.2, of Ubuntu 22.04; 1.2.3, of Debian 12). From 424 on all processors
 * share one number (the kernel's scripts/syscall.tbl).
 */
#pragma once
#include <sys/syscall.h>

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_statmount
#define SYS_statmount 457
#define SYS_listmount 458
#endif
