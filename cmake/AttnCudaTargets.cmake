# A LibTorch built for CUDA asks its user's project for the CUDA toolkit. We compile no CUDA code and need none of it:
# what LibTorch itself needs is linked into its shared libraries. These empty targets answer for the toolkit.
# Include before find_package(Torch). A project that does compile CUDA is left alone.
get_property(_attn_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(NOT "CUDA" IN_LIST _attn_languages AND NOT TARGET torch::cudart)
  foreach(_attn_target torch::cudart torch::nvtoolsext torch::nvtx3 torch::cudnn torch::cusparselt
                       caffe2::cuda caffe2::cublas caffe2::curand caffe2::cufft caffe2::nvrtc)
    if(NOT TARGET ${_attn_target})
      add_library(${_attn_target} INTERFACE IMPORTED)
    endif()
  endforeach()
endif()
unset(_attn_languages)
unset(_attn_target)
