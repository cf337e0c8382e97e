package browser

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"baton/internal/operate"
	"baton/internal/status"
	"baton/internal/status/statustest"
)

// screens lists the screens for which the page is made, with the maximum height of the page with 200 jobs. 0 means any height.
var screens = []struct {
	name          string
	width, height int64
	mobile        bool
	most          int
}{
	{"wide", 1440, 900, false, 5_000}, {"tablet", 768, 1024, false, 0}, {"phone", 390, 844, true, 12_000},
}

// TestPagesOfALargeInstallation opens the pages of 200 jobs on each screen, light and dark.
func TestPagesOfALargeInstallation(t *testing.T) {
	snap, shelf := statustest.Large(time.Now(), 200, 3, 10_000)
	answer := func(context.Context, operate.Order) (operate.Outcome, error) {
		return operate.Outcome{Text: "Done."}, nil
	}
	server := httptest.NewServer(status.New(status.Config{
		Source: statustest.Fixed(snap), Node: shelf, Do: answer,
		Health: func() status.Health { return status.Health{Live: true, Ready: true} },
	}))
	t.Cleanup(server.Close)
	l := &lab{t: t, browser: startBrowser(t)}
	for _, colours := range []string{"light", "dark"} {
		for _, screen := range screens {
			b := l.openAt(t, server.URL, "/", scheme(colours),
				emulation.SetTimezoneOverride("Asia/Kolkata"), // the longest times
				emulation.SetDeviceMetricsOverride(screen.width, screen.height, 1, screen.mobile))
			for _, at := range [][2]string{
				{"status", "/"}, {"job", "/jobs/" + snap.Jobs[0].Name}, {"command", "/jobs/" + snap.Jobs[7].Name},
				{"timeline", "/timeline"}, {"letters", "/dead-letters"}, {"trouble", "/?show=trouble"},
			} {
				name, path := at[0], at[1]
				where := fmt.Sprintf("large %s %s %s", name, screen.name, colours)
				b.visit(path)
				b.do(chromedp.WaitReady("main h1", chromedp.ByQuery))
				if path == "/" && screen.most > 0 { // once its script has made the times shorter
					b.await(fmt.Sprintf("%s: at most %d px high", where, screen.most),
						fmt.Sprintf("document.documentElement.scrollHeight <= %d", screen.most))
				}
				var height int
				b.eval("document.documentElement.scrollHeight", &height)
				t.Logf("%s: %d px", where, height)
				var cut []string
				b.eval(`[...document.querySelectorAll('td[data-label="Lag"]')].filter(c => c.scrollWidth > c.clientWidth + 1).map(c => c.innerText)`, &cut)
				if len(cut) > 0 {
					t.Errorf("%s: no room for the lag: %q", where, cut)
				}
				var findings []string
				b.eval(access, &findings)
				for _, f := range findings {
					t.Errorf("%s: %s", where, f)
				}
				b.shoot(where)
			}
		}
	}
}
