package status

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// page renders the status page: one document, with style sheet and script inside,
// that asks for nothing from anywhere.
type page struct {
	template *template.Template
	policy   string // Content-Security-Policy that allows exactly its two inline parts
	build    string
}

func newPage() *page {
	css, js := digest(pageCSS), digest(pageJS)
	parts := template.FuncMap{
		// Both are ours, and are inserted as they are so that their digests hold.
		"css": func() template.CSS { return template.CSS(pageCSS) }, //nolint:gosec // embedded, not input
		"js":  func() template.JS { return template.JS(pageJS) },    //nolint:gosec // embedded, not input
	}
	return &page{
		template: template.Must(template.New("page").Funcs(parts).Parse(pageHTML)),
		build:    digest(pageHTML + css + js)[:12],
		policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src 'self'; "+
			"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'", css, js),
	}
}

// render renders to memory first: a page is sent whole or not at all.
func (p *page) render(s Snapshot, known, all bool) ([]byte, error) {
	var out bytes.Buffer
	if err := p.template.Execute(&out, newView(s, known, all, p.build)); err != nil {
		return nil, fmt.Errorf("render the status page: %w", err)
	}
	return out.Bytes(), nil
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
