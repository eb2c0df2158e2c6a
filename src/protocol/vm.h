/* Where things are in a virtual machine: qemu's user network, and what it boots. */
#pragma once
#define VM_ADDRESS   "10.0.2.15"
#define VM_GATEWAY   "10.0.2.2" /* leads to the loopback of the box around the machine */
#define VM_RESOLVER  "10.0.2.3"
#define VM_PUBLISHED 61100 /* and the ports after it: published ports on their way, in the order of their rules */
#define VM_FILES     "/run/pinfold-vm" /* in the box around the machine: kernel and initial file system */
