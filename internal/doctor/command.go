package doctor

import (
	"fmt"
	"os"

	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/finding"
	"baton/internal/program"
)

// examineHost checks the programs that commands and notifications need on this host.
func examineHost(c config.Config) []Finding {
	var found []Finding
	for _, j := range c.Jobs {
		if !j.IsCommand() {
			continue
		}
		if err := program.Startable(j, c.Node.ID); err != nil {
			found = append(found, finding.Unstartable.Of(jobSubject(j.Name), err.Error(), "its runs fail on this host",
				"correct this on every host that may lead; run doctor as the user that baton runs as"))
		} else {
			found = append(found, finding.JobFits.Of(jobSubject(j.Name), "its command can be started on this host", "", ""))
		}
	}
	for _, n := range c.Notify {
		found = append(found, sendable(fmt.Sprintf("notification %q", n.Name), n.Webhook, n.Command, c.Node.ID)...)
	}
	for _, j := range c.Jobs {
		found = append(found, sendable(jobSubject(j.Name)+"'s dead man's switch", j.DeadMansSwitch, nil, c.Node.ID)...)
	}
	return found
}

// sendable finds reasons why a notification could not be sent.
func sendable(subject string, w *config.Webhook, argv config.Command, nodeID string) []Finding {
	var err error
	switch {
	case w != nil:
		if _, err = w.Address(); err == nil {
			_, err = w.Token()
		}
	case len(argv) > 0:
		if _, err = command.FindIn(argv[0], "", os.Environ()); err != nil {
			err = fmt.Errorf("%w (on %s)", err, nodeID)
		}
	}
	if err == nil {
		return nil
	}
	return []Finding{finding.Unsendable.Of(subject, err.Error(), "nothing is sent while this host leads",
		"correct this; run doctor as the user that baton runs as")}
}
