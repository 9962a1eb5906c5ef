# libminfer.so and libminfer.a out of the rooms declared so far, with what other projects need to find them: the header, minfer.pc and
# the files of find_package(minfer).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(objects "")
foreach(room IN LISTS MINFER_ROOMS)
  get_target_property(type mf_${room} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND objects $<TARGET_OBJECTS:mf_${room}>)
  endif()
endforeach()

set(map ${CMAKE_SOURCE_DIR}/cmake/minfer.map)
add_library(minfer_shared SHARED ${objects})
set_target_properties(minfer_shared PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${map})
target_link_options(minfer_shared PRIVATE -Wl,--version-script=${map})
if(NOT MINFER_SANITIZE AND NOT MINFER_FUZZ) # their run-time libraries are in the program
  target_link_options(minfer_shared PRIVATE -Wl,--no-undefined)
endif()
add_library(minfer_static STATIC ${objects})

foreach(kind shared static)
  set_target_properties(minfer_${kind} PROPERTIES OUTPUT_NAME minfer LINKER_LANGUAGE C)
  target_link_libraries(minfer_${kind} PRIVATE Threads::Threads PkgConfig::PCRE2 PkgConfig::UTF8PROC m)
  target_include_directories(minfer_${kind} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
set_target_properties(minfer_shared PROPERTIES EXPORT_NAME minfer)

# ---- What is installed

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/minfer)
install(FILES ${CMAKE_SOURCE_DIR}/include/minfer.h TYPE INCLUDE)
install(TARGETS minfer_shared EXPORT minferTargets)
install(TARGETS minfer_static EXPORT minferStaticTargets)
install(EXPORT minferTargets NAMESPACE minfer:: DESTINATION ${package})
install(EXPORT minferStaticTargets NAMESPACE minfer:: DESTINATION ${package})

configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/minferConfig.cmake.in minferConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(minferConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/minferConfig.cmake ${CMAKE_BINARY_DIR}/minferConfigVersion.cmake DESTINATION ${package})

# minfer.pc finds the prefix from where it lies, unless the library's folder is not below the prefix.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH up "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(dir LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(PC_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(PC_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
configure_file(${CMAKE_SOURCE_DIR}/cmake/minfer.pc.in minfer.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/minfer.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
