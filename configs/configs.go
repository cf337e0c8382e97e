// Package configs holds the example that baton ships: `baton config init` writes
// it, and a test loads it.
package configs

import _ "embed"

// Example is baton.example.yaml.
//
//go:embed baton.example.yaml
var Example []byte
