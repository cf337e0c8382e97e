package direct

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/operate"
	"baton/internal/redisledger"
)

func TestOneOfVeryManyJobsThatIsNotThereIsRefusedInALine(t *testing.T) {
	var c config.Config
	for i := range 2000 {
		c.Jobs = append(c.Jobs, config.Job{Name: fmt.Sprintf("job-%04d", i)})
	}
	_, err := Next(c, "report", time.Now(), 1)
	if !errors.Is(err, operate.ErrNoJob) || !strings.HasSuffix(err.Error(), "job-0007, job-0008 and 1991 more: see baton job list") {
		t.Errorf("%v", err)
	}
	for name, want := range map[string]string{"jop-0012": `did you mean job-0012?`, "-199": "did you mean job-1990, job-1991, "} {
		if _, err := Next(c, name, time.Now(), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestAsMuchOutputIsKeptAsCommandsTell checks that the ledger keeps as much output as the commands say.
func TestAsMuchOutputIsKeptAsCommandsTell(t *testing.T) {
	if operate.KeptOutput != redisledger.KeepOutput {
		t.Errorf("commands tell of %d bytes, and the ledger keeps %d", operate.KeptOutput, redisledger.KeepOutput)
	}
}
