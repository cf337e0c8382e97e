package config

import _ "embed"

// Schema is the JSON Schema of the file, for editors: the settings, their places, values and meanings. It finds errors of the file's form
// only; Read finds errors of the values.
//
//	go test ./internal/config -run Schema -update
//
// writes it from the structs, their comments and the rules of Validate.
//
//go:embed schema.json
var Schema []byte
