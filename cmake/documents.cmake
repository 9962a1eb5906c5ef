# The man page and the shells' completion scripts: the program prints them out of its tables.
include(GNUInstallDirs)
set(documents "")

function(minfer_prints file destination)
  set(path ${CMAKE_BINARY_DIR}/documents/${file})
  add_custom_command(OUTPUT ${path} COMMAND minfer ${ARGN} > ${path} DEPENDS minfer VERBATIM)
  set(documents ${documents} ${path} PARENT_SCOPE)
  install(FILES ${path} DESTINATION ${destination})
endfunction()

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/documents)
minfer_prints(minfer.1 ${CMAKE_INSTALL_MANDIR}/man1 --help-man)
minfer_prints(minfer ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
minfer_prints(_minfer ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
minfer_prints(minfer.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
add_custom_target(documents ALL DEPENDS ${documents})
