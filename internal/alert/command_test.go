package alert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/status/metrics"
)

// TestTheErrorOfACommandTellsNoSecret checks the output of a notification's command in an error, which is logged and shown. It must contain
// no secret of the environment or of the configuration, regardless of where the kept end of the output begins.
func TestTheErrorOfACommandTellsNoSecret(t *testing.T) {
	t.Setenv("OPS_PASSWORD", "of-the-environment")
	file := filepath.Join(t.TempDir(), "redis")
	if err := os.WriteFile(file, []byte("of-the-configuration\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.Redis.PasswordFile = file
	for script, want := range map[string]string{
		`echo "as $OPS_PASSWORD"; cat "` + file + `"; exit 3`:                                  "exit status 3: as *** ***",
		`echo "as $OPS_PASSWORD" >&2; exit 3`:                                                  "exit status 3: as ***",
		`printf of-the-; sleep 0.05; echo environment; exit 3`:                                 "exit status 3: ***",
		`echo $OPS_PASSWORD; i=0; while [ $i -lt 497 ]; do printf x; i=$((i+1)); done; exit 3`: "exit status 3: *** xxx",
		`printf 'nothing secret, of-the-'; exit 3`:                                             "exit status 3: nothing secret, of-the-",
	} {
		c.Notify = []config.Notify{{Name: "ops", Command: config.Command{"/bin/sh", "-c", script}, Timeout: time.Minute, GiveUpAfter: time.Minute}}
		n := New(c, func() (string, error) { return "id", nil }, zap.NewNop(), metrics.New("v", nil))
		all, err := n.Test(t.Context(), "ops", "by a test")
		n.Close(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = all[0].Err
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
}
