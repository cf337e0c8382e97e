package config

import _ "embed"

// Schema is the JSON Schema of the file, for editors: what can be set, where, to what,
// and what it means. It finds what is wrong with the file's form, and no more; Read finds
// what is wrong with what it says.
//
//	go test ./internal/config -run Schema -update
//
// writes it anew from the structs, their comments and what Validate wants.
//
//go:embed schema.json
var Schema []byte
