package operate_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"baton/internal/operate"
)

// losing returns a client of a node whose connection breaks while it answers its first orders.
func losing(t *testing.T, lost int) (c *operate.Client, runs func() []string) {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"lock_key":"baton"}`)
			return
		}
		var body struct {
			RunID string `json:"run_id"`
		}
		if err := json.Unmarshal(text, &body); err != nil {
			t.Error(err)
		}
		mu.Lock()
		ids = append(ids, body.RunID)
		now := len(ids)
		mu.Unlock()
		if now <= lost {
			panic(http.ErrAbortHandler)
		}
		_ = json.NewEncoder(w).Encode(operate.Outcome{Code: operate.CodeDone, RunID: body.RunID})
	}))
	t.Cleanup(server.Close)
	c, err := operate.DialServer(server.URL, "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Snapshot(t.Context()); err != nil { // so that the order uses a connection that was used before
		t.Fatal(err)
	}
	return c, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(ids) }
}

func TestAnOrderWhoseReplyIsLostIsNotSentTwice(t *testing.T) {
	for _, kind := range []operate.Kind{operate.KindStepDown, operate.KindCancel, operate.KindPause, operate.KindReload} {
		c, sent := losing(t, 1)
		_, err := c.Do(t.Context(), operate.Order{Kind: kind, Job: "users"})
		if err == nil || !strings.Contains(err.Error(), "the order may have been carried out") || len(sent()) != 1 {
			t.Errorf("%s: sent %d times, %v", kind, len(sent()), err)
		}
	}
}

func TestARunWhoseReplyIsLostIsAskedForUnderTheSameID(t *testing.T) {
	c, sent := losing(t, 2)
	out, err := c.Do(t.Context(), operate.Order{Kind: operate.KindRun, Job: "users"})
	ids := sent()
	if err != nil || len(ids) != 3 || out.RunID == "" || ids[0] != out.RunID || ids[1] != out.RunID || ids[2] != out.RunID {
		t.Errorf("asked for %q, %+v, %v", ids, out, err)
	}
	if _, err := c.Do(t.Context(), operate.Order{Kind: operate.KindRun, Job: "users"}); err != nil || sent()[3] == ids[0] {
		t.Errorf("another order: %q, %v", sent(), err)
	}
}

func TestAnOrderThatIsGivenUpIsNotAskedForAgain(t *testing.T) {
	c, sent := losing(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Do(ctx, operate.Order{Kind: operate.KindRun, Job: "users"}); err == nil || len(sent()) != 0 {
		t.Errorf("sent %d times, %v", len(sent()), err)
	}
}

func TestTheGroupOfASocketIsNamed(t *testing.T) {
	dir := t.TempDir()
	if got := operate.GroupOf(filepath.Join(dir, "gone", "admin.sock")); got != "its group" {
		t.Errorf("of a socket that is not there: %s", got)
	}
	group, err := user.LookupGroup("daemon")
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() != 0 { // only root may give files to other users
		gid, group.Name = os.Getgid(), ""
		if g, err := user.LookupGroupId(strconv.Itoa(gid)); err == nil {
			group.Name = g.Name
		}
	} else if err := os.Chown(dir, 0, gid); err != nil {
		t.Fatal(err)
	}
	if got := operate.GroupOf(filepath.Join(dir, "admin.sock")); !strings.HasPrefix(got, "group "+group.Name+" (sudo usermod -aG "+group.Name+" ") {
		t.Error(got)
	}
}
