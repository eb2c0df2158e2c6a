/*
 * Looks at an image from inside: this program runs in a container of the image, alone, without network and writable files, and starts
 * nothing that is there. What it finds is one JSON object on standard output (check.c reads it).
 */
#pragma once

#define IMAGE_LOOK "--look-at-image" /* followed by the image's USER and WORKDIR, and names of programs */

/* As process 1 of that container, with the words behind IMAGE_LOOK. Returns its exit status. */
int image_look_main(int argc, char **argv);
