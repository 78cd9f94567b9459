# Embeds the example configuration for `clockwise demo`; an edit of it configures anew.
set(examples ${CMAKE_SOURCE_DIR}/config/clockwise.yaml ${CMAKE_SOURCE_DIR}/config/upstreams.yaml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${examples})
file(READ ${CMAKE_SOURCE_DIR}/config/clockwise.yaml CLOCKWISE_EXAMPLE_CONFIGURATION)
file(READ ${CMAKE_SOURCE_DIR}/config/upstreams.yaml CLOCKWISE_EXAMPLE_UPSTREAMS)
configure_file(${CMAKE_SOURCE_DIR}/cmake/examples.cpp.in ${CMAKE_BINARY_DIR}/generated/examples.cpp
  @ONLY)
