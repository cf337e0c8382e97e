package browser

import (
	_ "embed"
	"testing"

	"github.com/chromedp/chromedp"
)

//go:embed access.js
var access string

// longNames puts a long name in the place of every name, and tells what is too wide then.
const longNames = `(() => {
	const names = [...document.querySelectorAll("bdi, code, small, .reason, .verdict .quiet, .problems span, .problems a")].filter((e) => !e.children.length);
	const before = names.map((e) => e.textContent), width = innerWidth;
	for (const e of names) e.textContent = "averylongname".repeat(14);
	const wide = document.documentElement.scrollWidth;
	const e = wide > width && [...document.querySelectorAll("body *")].filter((e) => !e.closest(".unseen, .skip")).find((e) => e.getBoundingClientRect().right > width + 1);
	const found = wide > width ? wide + " wide on a screen of " + width + ": " + e?.outerHTML.slice(0, 120) : "";
	names.forEach((e, i) => { e.textContent = before[i]; });
	return found;
})()`

// everyPageIsAccessible opens every page wide and narrow, in light and dark: each control
// has a name, each text a contrast, each page a heading and landmarks, and none scrolls
// sideways, however long the names are.
func everyPageIsAccessible(t *testing.T, l *lab) {
	leader := l.AwaitLeader(soon)
	b := l.open(t, leader, "/dead-letters")
	b.awaitLetter(l)
	l.increment("a", 1)
	b.visit("/sign-in")
	b.signIn()
	for name, path := range map[string]string{
		"status": "/", "job": "/jobs/views", "command": "/jobs/report", "timeline": "/timeline", "letters": "/dead-letters",
		"confirm": "/confirm?action=stepdown", "sign in": "/sign-in", "missing": "/jobs/none", "pause": "/confirm?action=pause_job&job=views",
	} {
		b.do(scheme("light"), chromedp.EmulateViewport(1200, 900))
		b.visit(path)
		for _, colours := range []string{"light", "dark"} {
			b.do(scheme(colours))
			for _, narrow := range []bool{false, true} {
				size := chromedp.EmulateViewport(1200, 900)
				where := name + " " + colours
				if narrow {
					size, where = phone(), where+" phone"
				}
				b.do(size, chromedp.WaitReady("main h1", chromedp.ByQuery))
				var findings []string
				b.eval(access, &findings)
				for _, f := range findings {
					t.Errorf("%s: %s", where, f)
				}
				b.shoot(where)
				var wide string
				b.eval(longNames, &wide)
				if wide != "" {
					t.Errorf("%s, with long names: %s", where, wide)
				}
			}
		}
	}
}
