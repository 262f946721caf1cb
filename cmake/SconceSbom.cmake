# Writes the software bill of materials for the installation, an SPDX 2.3 document in JSON that lists the versions used
# in this build.

include_guard(GLOBAL)

# Name as in SCONCE_DEPENDENCIES, or libpng, libjpeg, LibTorch | SPDX license | home page | how sconce uses it
set(sconce_sbom_packages
  "nlohmann_json | MIT | https://github.com/nlohmann/json | CONTAINS"
  "CLI11 | BSD-3-Clause | https://github.com/CLIUtils/CLI11 | CONTAINS"
  "ZLIB | Zlib | https://zlib.net | DEPENDS_ON"
  "libpng | libpng-2.0 | http://www.libpng.org/pub/png/libpng.html | DEPENDS_ON"
  "libjpeg | IJG AND BSD-3-Clause AND Zlib | https://libjpeg-turbo.org | DEPENDS_ON"
  "LibTorch | BSD-3-Clause | https://pytorch.org | DEPENDS_ON")

# Sets <out> to the JSON for a package. An unknown license or home page becomes NOASSERTION.
function(sconce_sbom_package out id name version license home)
  set(json "{\"SPDXID\": \"SPDXRef-${id}\", \"name\": \"${name}\", \"versionInfo\": \"${version}\",
     \"filesAnalyzed\": false, \"downloadLocation\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\",
     \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${license}\"")
  if(home)
    string(APPEND json ", \"homepage\": \"${home}\"")
  endif()
  set(${out} "    ${json}}" PARENT_SCOPE)
endfunction()

# Writes the document to <file>. The document lists every package whose version is set in the global property
# sconce_<name>_version.
function(sconce_write_sbom file)
  sconce_sbom_package(packages sconce sconce-cpp "${PROJECT_VERSION}" MIT "")
  set(relation "{\"spdxElementId\": \"SPDXRef-")
  set(relations "    ${relation}DOCUMENT\", \"relationshipType\": \"DESCRIBES\",
     \"relatedSpdxElement\": \"SPDXRef-sconce\"}")
  foreach(row IN LISTS sconce_sbom_packages)
    string(REPLACE " | " ";" row "${row}")
    list(POP_FRONT row name license home how)
    get_property(version GLOBAL PROPERTY sconce_${name}_version)
    if(version)
      string(REPLACE "_" "-" id "${name}") # SPDX IDs must not contain underscores
      sconce_sbom_package(package ${id} ${name} "${version}" "${license}" "${home}")
      string(APPEND packages ",\n${package}")
      string(APPEND relations
             ",\n    ${relation}sconce\", \"relationshipType\": \"${how}\", \"relatedSpdxElement\": \"SPDXRef-${id}\"}")
    endif()
  endforeach()
  string(UUID uuid NAMESPACE 6ba7b811-9dad-11d1-80b4-00c04fd430c8 TYPE SHA1 NAME "${packages}") # the namespace for URLs
  string(TIMESTAMP now "%Y-%m-%dT%H:%M:%SZ" UTC) # or SOURCE_DATE_EPOCH, if set
  file(WRITE "${file}" "{
  \"spdxVersion\": \"SPDX-2.3\",
  \"dataLicense\": \"CC0-1.0\",
  \"SPDXID\": \"SPDXRef-DOCUMENT\",
  \"name\": \"sconce-cpp-${PROJECT_VERSION}\",
  \"documentNamespace\": \"https://spdx.org/spdxdocs/sconce-cpp-${PROJECT_VERSION}-${uuid}\",
  \"creationInfo\": {\"created\": \"${now}\", \"creators\": [\"Tool: CMake-${CMAKE_VERSION}\"]},
  \"packages\": [
${packages}
  ],
  \"relationships\": [
${relations}
  ]
}
")
endfunction()
