package doctor

import (
	"fmt"
	"os"

	"baton/internal/command"
	"baton/internal/config"
	"baton/internal/program"
)

// examineHost checks what commands and notifications need of this host.
func examineHost(c config.Config) []Finding {
	var found []Finding
	for _, j := range c.Jobs {
		if !j.IsCommand() {
			continue
		}
		if err := program.Startable(j, c.Node.ID); err != nil {
			found = append(found, Finding{Severity: SeverityError, Subject: jobSubject(j.Name), What: err.Error(),
				Consequence: "its runs fail on this host",
				Remedy:      "as said; every host needs it that may lead. Ask as the user that baton runs as"})
		} else {
			found = append(found,
				Finding{Severity: SeverityOK, Subject: jobSubject(j.Name), What: "its command can be started on this host"})
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

// sendable finds what would keep a notification from being sent.
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
	return []Finding{{Severity: SeverityError, Subject: subject, What: err.Error(),
		Consequence: "nothing is sent while this host leads", Remedy: "as said; run doctor as the user that baton runs as"}}
}
