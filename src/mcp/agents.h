/* Agents as tools: programs that answer prompts (pinfold_agent_list()), each in the box of its own session. */
#pragma once
#include "mcp/tools/tool.h"

/*
 * Creates a tool for each of options->agents ("codex", "kiro-cli:reviewer"). False with a message. The tools live as
 * long as the process.
 */
bool agents_begin(const struct mcp_options *o, char *why, size_t room);
/* A sentence for each of them that has no login on this machine, or (unless an image has it) is not installed. */
void agents_tell_missing(bool image, void (*tell)(const char *sentence));
