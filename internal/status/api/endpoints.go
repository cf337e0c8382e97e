package api

import (
	"fmt"
	"net/http"

	"baton/internal/diagnose"
	"baton/internal/operate"
)

// endpoints returns the endpoints of the API. Its OpenAPI description is made from them.
func endpoints() []endpoint {
	count := func(summary string) parameter { return parameter{"n", "integer", summary} }
	letters := []parameter{
		{"job", "string", "Only those of this job."},
		{"database", "string", "Only those in this database, by its name in the configuration."},
		{"within", "string", "Only those put aside within this time, such as 1h."},
		{"older_than", "string", "Only those put aside longer ago than that."},
		{"text", "string", "Only those with this text in the record, which is JSON, or in the reason."},
		{"reason", "string", "Only those of this reason, as /dead-letters/reasons has it, of the newest 5000."},
	}
	return append([]endpoint{
		{"GET", "/status", "The state of the election and its jobs, as this node knows it. " +
			"503 before the first reading.", nil, nil, statusReply{}, false, (*API).askStatus},
		{"GET", "/leader", "Who leads.", nil, nil, leaderReply{}, false, (*API).askLeader},
		{"GET", "/nodes", "The nodes of the election.", nil, nil, nodesReply{}, false, (*API).askNodes},
		{"GET", "/jobs", "The jobs and how they stand.", nil, nil, jobsReply{}, false, (*API).askJobs},
		{"GET", "/jobs/{job}", "One job.", nil, nil, diagnose.Job{}, false, (*API).askJob},
		{"GET", "/jobs/{job}/history", "Its finished runs and missed slots, the newest first.",
			[]parameter{count("How many entries, up to 1000; 20 if it is left out."),
				{"before", "string", "Entries older than that one, by its id."}}, nil, historyReply{}, false, ofNode((*API).askHistory)},
		{"GET", "/jobs/{job}/next", "Its coming slots.",
			[]parameter{count("How many slots, up to 1000; 10 if it is left out."),
				{"from", "string", "Slots after this time, RFC 3339; now if it is left out."}}, nil, operate.Coming{},
			false, ofNode((*API).askNext)},
		{"GET", "/jobs/{job}/runs/{run}", "How a run stands.", nil, nil, operate.JobRun{}, false, ofNode((*API).askRun)},
		{"GET", "/jobs/{job}/runs/{run}/output", "What a run of a command has printed, as far as it is kept.",
			[]parameter{{"from", "integer", "Begin at this byte of all that it has printed."}}, nil, outputReply{},
			true, ofNode((*API).askOutput)},
		{"GET", "/events", "The history of the election, the newest first.",
			[]parameter{count("How many, up to 1000; 50 if it is left out.")}, nil, eventsReply{}, false, ofNode((*API).askEvents)},
		{"GET", "/samples", "How far the flushes were behind and what they wrote, a sample each 15 seconds, for an hour.",
			[]parameter{{"since", "string", "Samples later than this time, RFC 3339."}}, nil, samplesReply{}, false,
			ofNode((*API).askSamples)},
		{"GET", "/runs", "The last 30 runs of every job in short, at most ten seconds old; a job's history has more of each.", nil, nil,
			runsReply{}, false, ofNode((*API).askRuns)},
		{"GET", "/explain/{node}", "Why a node leads, or does not.", nil, nil, operate.Explanation{}, false, ofNode((*API).askExplain)},
		{"GET", "/dead-letters", "Records that did not fit their table, the newest first.",
			append([]parameter{count("How many, up to 1000; 50 if it is left out."),
				{"whole", "boolean", "Do not cut long records."}}, letters...), nil, lettersReply{}, true, ofNode((*API).askLetters)},
		{"GET", "/dead-letters/keys", "Which dead letters there are, at most 5000.", letters, nil, keysReply{}, true,
			ofNode((*API).askKeys)},
		{"GET", "/dead-letters/reasons", "How many dead letters there are, by job and reason.", letters, nil,
			reasonsReply{}, true, ofNode((*API).askReasons)},
		{"GET", "/dead-letters/{id}", "One dead letter, by its id or the beginning of it; its record is whole.",
			[]parameter{{"database", "string", "Only in this database, by its name in the configuration."}}, nil,
			operate.Letter{}, true, ofNode((*API).askLetter)},
		{"GET", "/openapi.json", "This description.", nil, nil, map[string]any{}, false, (*API).askOpenAPI},
	}, orderEndpoints()...)
}

// orderEndpoints returns the endpoints that change something.
func orderEndpoints() []endpoint {
	order := func(path, summary string, body any, ask askFunc) endpoint {
		return endpoint{"POST", path, summary, nil, body, operate.Outcome{}, true, ask}
	}
	return []endpoint{
		order("/stepdown", "Let the leader hand over in order, and wait for the next term.", stepDownBody{}, give(giveStepDown)),
		order("/pause", "Let no node lead until resume, and wait until none does.", waitBody{}, give(giveElection(operate.KindPause))),
		order("/resume", "End a pause, and wait until a node leads.", waitBody{}, give(giveElection(operate.KindResume))),
		order("/jobs/pause", "Run no job until resume.", pauseJobBody{}, give(givePauseJob)),
		order("/jobs/resume", "End the pause of all jobs.", reloadBody{}, give(giveResumeJob)),
		order("/jobs/{job}/run", "Let the leader run a job now.", runBody{}, give(giveRun)),
		order("/jobs/{job}/cancel", "Let the leader end all runs of a job.", cancelBody{}, give(giveCancel)),
		order("/jobs/{job}/verify", "Let the leader compare what Redis has with the rows of a job's table. The state has the result.",
			verifyBody{}, give(giveVerify)),
		order("/jobs/{job}/backfill", "Let the leader mark all keys of a job, so that its next runs flush them.",
			backfillBody{}, give(giveBackfill)),
		order("/jobs/{job}/pause", "Do not run a job until resume.", pauseJobBody{}, give(givePauseJob)),
		order("/jobs/{job}/resume", "End the pause of a job.", reloadBody{}, give(giveResumeJob)),
		order("/dead-letters/replay", "Write dead letters after all, each once.", replayAllBody{}, give(giveReplayAll)),
		order("/dead-letters/drop", "Remove dead letters for good.", dropAllBody{}, give(giveDropAll)),
		order("/dead-letters/{id}/replay", "Write a dead letter after all, once.", replayBody{}, give(giveReplay)),
		order("/dead-letters/{id}/drop", "Remove a dead letter for good.", dropBody{}, give(giveDrop)),
		order("/reload", "Let this node read its configuration again.", reloadBody{}, give(giveReload)),
		order("/notifications/test", "Let this node send a test to the targets of its notifications. "+
			"done says that it was tried: see tests.",
			testBody{}, give(giveTestNotify)),
	}
}

// ofNode wraps an endpoint that needs the Node. Without one it answers that nothing was found.
func ofNode(ask askFunc) askFunc {
	return func(a *API, r *http.Request) (any, error) {
		if a.Node == nil {
			return nil, fmt.Errorf("%w: this node answers from its state alone", operate.ErrNotFound)
		}
		return ask(a, r)
	}
}
