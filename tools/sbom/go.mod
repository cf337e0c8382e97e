// A module of its own: it reads programs, and is no part of one.
module baton/tools/sbom

go 1.26.0
