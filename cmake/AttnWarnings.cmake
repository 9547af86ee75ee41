# Linked through $<BUILD_INTERFACE:...> only, so that it is no part of the installed package.
add_library(attn_warnings INTERFACE)
target_compile_options(attn_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion $<$<BOOL:${ATTN_WERROR}>:-Werror>)
