# LibTorch, through its own CMake package. Give CMAKE_PREFIX_PATH=<folder that holds share/cmake and lib>.
find_package(Torch 2.6 REQUIRED)
