#include "cli/commands.h"

int main(int argc, char **argv) { return mf_cli_main(argc, argv); }
