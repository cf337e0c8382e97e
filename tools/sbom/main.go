// Sbom writes the modules of a Go program, which the program itself names, in CycloneDX 1.5. The
// same program gives the same bytes.
//
//	sbom -name baton -version v1.2.3 -epoch 1700000000 -license Apache-2.0 PROGRAM >baton.cdx.json
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		SerialNumber string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp time.Time `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Licenses   []license  `json:"licenses,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	license struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

func main() {
	name, version, id := flag.String("name", "", "the program"), flag.String("version", "", "its version"), flag.String("license", "", "its SPDX identifier")
	epoch := flag.Int64("epoch", 0, "when it was made, seconds since 1970")
	flag.Parse()
	text, err := describe(flag.Arg(0), *name, *version, *id, time.Unix(*epoch, 0).UTC())
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func describe(path, name, version, id string, made time.Time) ([]byte, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(program)
	self := component{
		Type: "application", Ref: name, Name: name, Version: version,
		Hashes: []hash{{"SHA-256", hex.EncodeToString(sum[:])}}, Licenses: make([]license, 1),
	}
	self.Licenses[0].License.ID = id
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "CGO_ENABLED", "-trimpath", "vcs.revision":
			self.Properties = append(self.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	all := []component{{
		Type: "library", Ref: "pkg:golang/std@" + info.GoVersion, Name: "std", Version: info.GoVersion,
		PURL: "pkg:golang/std@" + info.GoVersion,
	}}
	for _, m := range info.Deps {
		all = append(all, library(m))
	}
	of := dependency{Ref: name}
	for _, c := range all {
		of.DependsOn = append(of.DependsOn, c.Ref)
	}
	// A UUID that the program decides: version 5 in its form.
	u := sum
	u[6], u[8] = u[6]&0x0f|0x50, u[8]&0x3f|0x80
	text, err := json.MarshalIndent(document{
		Format: "CycloneDX", Spec: "1.5", Version: 1, SerialNumber: fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:16]),
		Metadata: metadata{made, self}, Components: all, Dependencies: []dependency{of},
	}, "", "  ")
	return append(text, '\n'), err
}

func library(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	c := component{Type: "library", Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}
