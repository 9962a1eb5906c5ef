// Versions. CMakeLists.txt states the program's too; a test holds them equal.
#ifndef MF_BASE_VERSION_H
#define MF_BASE_VERSION_H

#define MF_VERSION            "0.1.0"
#define MF_ARITHMETIC_VERSION 2 // of docs/arithmetic.md

#endif
