/* Tools on a session's files, from outside by descriptor: read_file, write_file, edit_file, list_dir, glob, grep. */
#pragma once
#include "mcp/tools/tool.h"

#define MAX_FILE (16u << 20) /* bytes of one file that is read, and of an answer that holds it */

extern const struct tool tool_read_file, tool_write_file, tool_edit_file, tool_list_dir, tool_glob, tool_grep;
