package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"baton/internal/testsupport/walk"
)

// TestSchemaIsUpToDate compares the schema with a new schema that is generated from the code.
func TestSchemaIsUpToDate(t *testing.T) {
	want := writtenSchema(t)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return // the old schema is embedded
	}
	if !bytes.Equal(Schema, want) {
		t.Error("schema.json is not what the code says: go test ./internal/config -run Schema -update")
	}
}

// decoded returns the content of a file as an editor sees it: YAML with the types of JSON.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var v, tree any
	err := yaml.Unmarshal([]byte(text), &v)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	asJSON, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(asJSON, &tree)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return tree
}

// testSecrets is an environment that contains the passwords that testdata names.
func testSecrets(name string) (string, bool) { return "secret", strings.HasSuffix(name, "_PASSWORD") }

// everyDocument returns the files of testdata that contain every setting.
func everyDocument(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(everySetting)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

func TestSchemaTakesWhatReadTakes(t *testing.T) {
	c := newChecker(t, Schema)
	texts := map[string]string{"nothing": "", "nothing set": "node:\njobs:\nredis:\n  tls:\ndatabases:\n"}
	for _, path := range []string{"../../configs/baton.example.yaml", "../../deploy/packages/baton.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(text)
	}
	for _, document := range everyDocument(t) {
		texts[document] = document
	}
	blocks := 0
	env := func(string) (string, bool) { return "/run/credentials/x", true }
	for _, b := range pageBlocks(t) {
		text := b.Text
		if strings.HasPrefix(text, "- name:") {
			text = "jobs:\n  " + strings.ReplaceAll(text, "\n", "\n  ")
		}
		if _, err := parse(b.String(), []byte(text), env); err == nil {
			texts[b.String()] = text
			blocks++
		}
	}
	if blocks < 30 {
		t.Errorf("%d blocks of the documentation are configurations", blocks)
	}
	for name, text := range texts {
		if why := c.misfit(decoded(t, text)); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

// pageBlocks returns the YAML blocks of all pages.
func pageBlocks(t *testing.T) []walk.Block {
	t.Helper()
	var all []walk.Block
	read := func(page string) error {
		blocks, err := walk.Read(page)
		for _, b := range blocks {
			if b.Kind == "yaml" {
				all = append(all, b)
			}
		}
		return err
	}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			err = read(path)
		}
		return err
	})
	if err == nil {
		err = read("../../README.md")
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}
