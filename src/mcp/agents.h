/*
 * Agents as tools: a program that answers prompts (pinfold_agent_list()), in the box of a session of its own.
 */
#pragma once
#include "mcp/tools/tool.h"

/*
 * Makes a tool of each of options->agents ("codex", "kiro-cli:reviewer"). False with a sentence. The tools live as long as the
 * process.
 */
bool agents_begin(const struct mcp_options *o, char *why, size_t room);
