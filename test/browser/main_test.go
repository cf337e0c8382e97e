// Package browser opens the pages of real nodes in a real Chromium, and compares the pages with the state in Redis.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

const (
	// soon is a long time, because two cores may run all programs at the same time.
	soon    = time.Minute
	lockKey = "baton"
	token   = "not-a-secret-but-a-token-of-the-tests"
)

const jobs = `
- name: views
  schedule: "@every 1s"
  flush:
    from: {type: counters, key: "views"}
    to: {database: main, table: articles, key: [id]}
    columns: {id: $field, views: $value}
- name: report
  schedule: "30 2 * * *"
  command: [/bin/sh, -c, "for i in 1 2 3 4; do printf 'line %s of <b>it</b> \\033[31m\\n' $i; sleep 0.4; done"]
`

// lab is one installation and one browser for all tests.
type lab struct {
	*cluster.Cluster
	t       *testing.T
	db      *testsupport.Database
	conn    redis.Conn
	browser context.Context
	ttl     time.Duration
}

func newLab(t *testing.T) *lab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	db := testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
	db.Exec(t, "CREATE TRIGGER no_bad BEFORE INSERT ON articles WHEN NEW.id = 'bad' BEGIN SELECT RAISE(ABORT, 'bad is not wanted'); END")
	server := testsupport.StartRedis(t)
	l := &lab{t: t, db: db, conn: server.Conn(), browser: startBrowser(t), ttl: 10 * time.Second}
	l.Cluster = cluster.Start(t, cluster.Options{
		TTL: l.ttl, LockKey: lockKey, RedisURL: server.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db), JobsYAML: jobs,
		HTTPYAML: fmt.Sprintf("token_file: %q", file), MayExit: true,
	})
	l.increment("a", 3)
	l.increment("bad", 1)
	l.AwaitLeader(soon)
	return l
}

// scratch returns a directory for programs whose children may still write into it for a moment after the program's end.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "browser") //nolint:usetesting // t.TempDir does not try again to remove it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for deadline := time.Now().Add(soon); ; time.Sleep(50 * time.Millisecond) {
			if err := os.RemoveAll(dir); err == nil {
				return
			} else if time.Now().After(deadline) {
				t.Error(err)
				return
			}
		}
	})
	return dir
}

func startBrowser(t *testing.T) context.Context {
	t.Helper()
	dir := scratch(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], // without what a person's browser does beside
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(filepath.Join(dir, "user")), chromedp.Env("TMPDIR="+dir),
		chromedp.Flag("host-resolver-rules", "MAP db1.example 127.0.0.1"), // by plain http from another host
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(soon),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, end := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		stop() // this kills the browser, and waits until it has ended
		end()
	})
	if err := chromedp.Run(browser); err != nil {
		t.Fatalf("start chromium (the package chromium, see scripts/test-deps): %v", err)
	}
	return browser
}

func (l *lab) increment(field string, by int) {
	l.t.Helper()
	if _, err := l.conn.Do("HINCRBY", "views", field, by); err != nil {
		l.t.Fatal(err)
	}
}

// truth returns the node that leads according to Redis, or "" if no node leads.
func (l *lab) truth(t *testing.T) string {
	t.Helper()
	owner, err := redis.String(l.conn.Do("GET", lockKey))
	if err != nil {
		return ""
	}
	term, err := redis.StringMap(l.conn.Do("HGETALL", "{"+lockKey+"}:term"))
	if err != nil {
		t.Fatal(err)
	}
	if term["owner"] != owner {
		return ""
	}
	return term["node_id"]
}

// tab is one page of the browser. It begins without cookies.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string
}

// open opens a page of a node.
func (l *lab) open(t *testing.T, n *cluster.Node, path string, first ...chromedp.Action) *tab {
	t.Helper()
	return l.openAt(t, n.URL(), path, first...)
}

// openAt opens a page of a server.
func (l *lab) openAt(t *testing.T, url, path string, first ...chromedp.Action) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(l.browser)
	ctx, cancel := context.WithTimeout(ctx, 3*soon)
	t.Cleanup(func() { cancel(); end() })
	tb := &tab{t: t, ctx: ctx, url: url}
	tb.do(append([]chromedp.Action{network.ClearBrowserCookies(), page.BringToFront(), emulation.SetDeviceMetricsOverride(1200, 900, 1, false)}, first...)...)
	tb.visit(path)
	return tb
}

// do executes actions one after the other. The page may be reloaded after the search for an element and before the action on the element.
// Then the action was not executed, and do tries it again.
func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	for tries := 0; len(actions) > 0; {
		switch err := chromedp.Run(b.ctx, actions[0]); {
		case err == nil:
			actions, tries = actions[1:], 0
		case tries == 10 || !strings.Contains(err.Error(), "node with given id"):
			b.t.Fatalf("chromium: %v", err)
		default:
			tries++
		}
	}
}

func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.url + path))
}

// eval evaluates an expression in the page.
func (b *tab) eval(expression string, into any) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, into))
}

// is evaluates a condition. While the browser leaves a page, is returns false.
func (b *tab) is(condition string) (yes bool) {
	if chromedp.Run(b.ctx, chromedp.Evaluate("!!("+condition+")", &yes)) != nil {
		return false
	}
	return yes
}

func (b *tab) text() (text string) {
	_ = chromedp.Run(b.ctx, chromedp.Evaluate("document.body.innerText", &text)) // while the browser leaves a page there is no text
	return text
}

// await waits until a condition of the page is true.
func (b *tab) await(what, condition string) {
	b.t.Helper()
	testsupport.Await(b.t, what, func() bool { return b.is(condition) }, b)
}

// String returns what the page says.
func (b *tab) String() string { return "the page says:\n" + b.text() }

// awaitText waits until the page contains a text.
func (b *tab) awaitText(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.await(fmt.Sprintf("%q", text), fmt.Sprintf("document.body.innerText.includes(%s)", quoted))
}

// awaitLetter reloads the page of dead letters until the page shows a letter.
func (b *tab) awaitLetter(l *lab) {
	b.t.Helper()
	l.Await(soon, "a dead letter", func() bool { b.visit("/dead-letters"); return strings.Contains(b.text(), "Why it did not fit") })
}

// click clicks the link or button with the given text, as a mouse does.
func (b *tab) click(text string) {
	b.t.Helper()
	path := fmt.Sprintf(`//*[self::a or self::button][starts-with(normalize-space(.), %q)]`, text)
	b.do(chromedp.Click(path, chromedp.BySearch, chromedp.NodeVisible))
}

// signIn signs in with the form on the page.
func (b *tab) signIn() {
	b.t.Helper()
	b.do(chromedp.WaitVisible("#token", chromedp.ByQuery), chromedp.SendKeys("#token", token, chromedp.ByQuery))
	b.do(chromedp.Click("button.primary", chromedp.ByQuery, chromedp.NodeVisible))
	b.await("to be signed in", `!document.getElementById("token") && document.readyState === "complete"`)
}

// phone sets a narrow screen.
func phone() chromedp.Action { return emulation.SetDeviceMetricsOverride(360, 740, 1, true) }

func withoutScripts() chromedp.Action { return emulation.SetScriptExecutionDisabled(true) }

func scheme(name string) chromedp.Action {
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
}

// shoot stores a picture of the page if the environment requests this.
func (b *tab) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("BATON_SCREENSHOTS")
	if dir == "" {
		return
	}
	var picture []byte
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		picture, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".png"), picture, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
