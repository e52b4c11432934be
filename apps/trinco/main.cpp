// The executable trinco: the stores of this machine, and a quick start. See start/executables.hpp.

#include "apps/trinco/start/start_program.hpp"

int main(int argc, char** argv) {
    return trinco::program::start_program(argc, argv);
}
