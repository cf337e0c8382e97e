package config

import _ "embed"

// Schema is the JSON Schema of the configuration file, for editors. It contains the settings with their places, values and meanings. It
// finds only errors in the structure of the file. Read finds errors in the values.
//
//	go test ./internal/config -run Schema -update
//
// generates the schema from the structs, their comments and the rules of Validate.
//
//go:embed schema.json
var Schema []byte
