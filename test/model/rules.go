package model

// These are the promises of DESIGN.md, as far as the model checks them.
const (
	OneActs      = "Promise 1 is broken: two nodes act inside their trust windows."
	NoneCommits  = "Promise 2 is broken: a transaction of a deposed leader commits after its successor took over."
	LeaderWrites = "Promise 5 is broken: a leader cannot write, because the database has a higher epoch."
	StartsOnce   = "Promise 4 is broken: a slot, or a retrial, starts twice."
	TwoRuns      = "Promise 4 is broken: two nodes run the job at the same time."
	MissedAndRun = "Section 5 is broken: a slot is recorded as missed, and has run."
	NoAccount    = "Section 5 is broken: from here the history never has the end of each run and of each slot."
	EpochRises   = "Rule 9 is broken: an epoch is given twice, or falls."
)

// Rule is a rule of DESIGN.md that can be switched off. Its text begins with the number of the rule in section 3.
type Rule string

// These are the rules. The test lists for each rule the story of what happens without it.
const (
	SetIfAbsent         Rule = "1: the lock is set only if it is absent"
	SameOwner           Rule = "1: the owner that asks again has won, with the same epoch"
	RenewOwn            Rule = "2: a renewal extends only the lock of its owner"
	ReleaseOwn          Rule = "3: a release deletes only the lock of its owner"
	TrustFromSending    Rule = "4: the window counts from the sending of the request"
	Margin              Rule = "4: the window ends earlier than the lease by a margin"
	BootClock           Rule = "4: the clock of the window continues in suspend"
	GuardNeverWaits     Rule = "4: the end of the window never waits for Redis"
	LostStops           Rule = "5: after the answer lost the work stops now"
	UnknownMovesNothing Rule = "5: a renewal without an answer does not move the deadline"
	NeverPastH          Rule = "5: no renewal after the hard stop H"
	ProofNeverPastH     Rule = "5: the same for the second request of a renewal, which contains the proof"
	NewUUID             Rule = "5: a new campaign has a new UUID"
	LostIfRunOut        Rule = "5: a renewal whose lock has run out is answered lost"
	ReleaseAfterWork    Rule = "6: the lock is released only after the work has returned"
	EpochAboveClock     Rule = "9: the epoch is above Redis' TIME if the store was empty or old"
	EpochAboveFloor     Rule = "9: the epoch is above the floor"
	Raise               Rule = "9: a leader that finds a higher epoch in a database raises its own epoch"
	Fence               Rule = "6 (flush): a transaction checks the fence"
	FenceOwner          Rule = "6 (flush): the fence is another one if it has the same epoch and another owner"
	Quarantine          Rule = "10: no new owner wins for one lease in another incarnation of Redis"
	LongestLease        Rule = "10: the quarantine is as long as the longest known lease"
	FloorShowsLoss      Rule = "10: a floor shows that an empty store has lost its data"
	Restore             Rule = "10: the leader may renew in another incarnation"
	RestoredWithKey     Rule = "10: this renewal writes the lock key again"
	LaterTermStays      Rule = "10: this renewal does not replace the lock of a later term"
	Proof               Rule = "10: this renewal proves that it was sent in the present incarnation"
)

// These are the rules of section 5, about slots.
const (
	OwnerClaims        Rule = "slots: a claim checks the owner of the lock"
	OwnerMisses        Rule = "slots: a record of a miss checks the owner of the lock"
	LaterSlot          Rule = "slots: a claimed slot is later than the last claimed slot"
	MissedBars         Rule = "slots: a claimed slot is later than the last missed slot"
	ClaimedIsNotMissed Rule = "slots: a slot that was claimed after all is not recorded as missed"
	SameRun            Rule = "slots: a repeated claim of the same run is granted again"
	RetrialPending     Rule = "slots: a retrial is granted only while it is pending"
	RetrialOnce        Rule = "slots: the claim of a retrial removes it"
	MissesFirst        Rule = "slots: a slot is claimed only after the misses before it are recorded"
	StartsInTerm       Rule = "slots: no run starts after the end of its term"
	RecordedOnce       Rule = "slots: the end of a run is recorded once"
	LostKeepsRetrial   Rule = "slots: the late end of a lost run adds no retrial"
)
