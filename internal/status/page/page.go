package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/status/auth"
	"baton/internal/status/state"
	"baton/internal/status/web"
	"baton/internal/text"
)

var (
	//go:embed page*.html
	pageHTML embed.FS
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// Config contains the parts and settings that [Pages] needs.
type Config struct {
	Watch  *state.State
	Auth   *auth.Auth
	Node   operate.Node // if nil, the pages show only the Snapshot
	Do     operate.Do   // if nil, the pages take no orders
	Places *web.RequestLimiter
	Log    *zap.Logger
}

// Pages renders the pages. Each page is one document that contains its style sheet and its script, and loads no other file.
type Pages struct {
	Config
	template    *template.Template
	Policy      string // the Content-Security-Policy, which allows only these two inline parts
	build       string
	answers     *cachedQueries
	hub         *web.Feeds[topic, *edition]
	results     *results
	submissions *submissions
}

// New returns Pages with the configuration c.
func New(c Config) *Pages {
	css, js := digest(pageCSS), digest(pageJS)
	parts := template.FuncMap{
		// Both files belong to baton. They must not be escaped, so that they match their digests.
		"css": func() template.CSS { return template.CSS(pageCSS) }, //nolint:gosec // embedded, not input
		"js":  func() template.JS { return template.JS(pageJS) },    //nolint:gosec // embedded, not input
		"url": orderLink, "seenWithin": diagnose.SeenWithin.Milliseconds,
	}
	p := &Pages{
		Config: c, answers: newAnswers(c.Node),
		template: template.Must(template.New("page").Funcs(parts).ParseFS(pageHTML, "page*.html")),
		Policy: fmt.Sprintf("default-src 'none'; style-src 'sha256-%s'; script-src 'sha256-%s'; connect-src 'self'; "+
			"img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'", css, js),
		results: &results{}, submissions: &submissions{},
	}
	var all []string
	for _, t := range p.template.Templates() {
		if t.Tree != nil {
			all = append(all, t.Name()+t.Tree.Root.String())
		}
	}
	slices.Sort(all) // their order is random, but a restart must not change the build
	p.build = digest(strings.Join(all, "") + css + js)[:12]
	p.hub = newHub(p)
	return p
}

// orderLink calls orderURL with an action that a template gives as a string.
func orderLink(action string, pairs ...string) string {
	return orderURL(operate.Kind(action), pairs...)
}

// document contains the data of a whole page: the content (View), and the title and other data around the content.
type document struct {
	Kind     string // the template of View
	Code     int
	Build    string // identifies style sheet, script and templates
	Title    string
	Announce string // read out by screen readers when it changes
	Alarm    string // the reason why the page is not up to date
	NodeID   string
	Version  string
	LockKey  string
	Role     string
	Now      instant
	Letters  string
	URL      string // the address of this page, for links back to it
	Root     string // the relative path from here to the first page
	Refresh  int    // in seconds, for browsers without a script; 0 means no refresh
	CanOrder bool   // on this connection the node takes orders from callers with the token
	See      bool   // the reader may see output, errors and records in full
	HowTo    bool   // the page explains how to allow orders
	View     any

	// These fields belong to one session, so they are not in the part that all readers share.
	SignedIn bool
	CSRF     string
}

// topic identifies one version of a page. All readers with the same topic see the same content.
type topic struct {
	path, query string
	see, order  bool // whether the readers may see everything, and whether they may give orders
}

// newDocument returns the document of a page, still without its content. The argument known is false if the state was never read.
func (p *Pages) newDocument(t topic, snap diagnose.Snapshot, known bool) *document {
	now := snap.Clock()
	d := &document{
		Code: http.StatusOK, Build: p.build, NodeID: cmp.Or(snap.NodeID, "unnamed node"), Version: snap.Version,
		LockKey: snap.LockKey, Role: string(snap.Role),
		Now: at(now.UTC(), now), URL: t.path, Root: upTo(t.path), Refresh: 5, CanOrder: t.order, See: t.see, HowTo: !t.order,
	}
	if t.query != "" {
		d.URL += "?" + t.query
	}
	if snap.Error != "" {
		d.Alarm = clip(visible(snap.Error))
		if known {
			d.Alarm = "What you see is " + text.Span(snap.Age.Duration()) + " old: " + d.Alarm
		}
	}
	return d
}

// render renders a page in memory, so that a page is sent completely or not at all. The argument part is "document" for the whole page, or
// "live" for the part of the page that changes.
func (p *Pages) render(part string, d *document) ([]byte, error) {
	var out bytes.Buffer
	if err := p.template.ExecuteTemplate(&out, part, d); err != nil {
		return nil, fmt.Errorf("render the page %s: %w", d.Kind, err)
	}
	return relative(out.Bytes(), d.Root), nil
}

// upTo returns the relative path from a page to the start page, such as "../../". A relative path is needed because a proxy may serve the
// pages below its own path, which only the browser knows.
func upTo(path string) string {
	return cmp.Or(strings.Repeat("../", max(strings.Count(path, "/")-1, 0)), "./")
}

// relative makes the addresses in a page relative. Views and templates write addresses that begin at this node's root. relative cannot
// change other text by mistake, because the template escapes the quotes in other text.
func relative(page []byte, root string) []byte {
	for _, attribute := range []string{` href="`, ` action="`} {
		page = bytes.ReplaceAll(page, []byte(attribute+"/"), []byte(attribute+root))
	}
	return page
}

// redirect sends the browser to an address that begins at this node's root.
func redirect(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Location", upTo(r.URL.EscapedPath())+strings.TrimPrefix(to, "/"))
	w.WriteHeader(http.StatusSeeOther)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}
