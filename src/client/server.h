/* `pinfold --serve`: answers one request of the shared library, on the socket that is descriptor 3. */
#pragma once
#define SERVE_SOCKET 3
/* Answers one request; returns the program's exit status. */
int serve(void);
