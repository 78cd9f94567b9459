# What `cmake --install` puts where, and the Debian package made of it (`./dev package`).
include(GNUInstallDirs)
install(TARGETS clockwise RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES config/clockwise.yaml config/upstreams.yaml DESTINATION /etc/clockwise)
install(FILES config/clockwise.service DESTINATION /lib/systemd/system)
install(FILES config/nginx-drop-in.yaml config/haproxy-drop-in.yaml
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES config/clockwise.schema.json config/upstreams.schema.json DESTINATION /etc/clockwise)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME clockwise)
set(CPACK_PACKAGE_FILE_NAME clockwise)
set(CPACK_PACKAGE_CONTACT "The Clockwise authors <maintainers@clockwise.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "consistent-hashing reverse proxy")
set(CPACK_PACKAGE_DESCRIPTION
  "Spreads requests over upstream servers by hashing the request URI onto a weighted ring, takes a
changed list of servers without failing a request, and tells exactly which share of the keys moved.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_SECTION httpd)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/generated/conffiles)
file(WRITE ${CMAKE_BINARY_DIR}/generated/conffiles
  "/etc/clockwise/clockwise.yaml\n/etc/clockwise/upstreams.yaml\n")
include(CPack)
