// Package elector elects one leader among the nodes that contend for a lock, runs
// the leader's work while it may be trusted, and hands over.
//
// # Model
//
// A [Lock] grants a lease to one owner at a time and lets it expire by the store's clock. Every term has its own owner, a fresh UUID,
// and an epoch that is higher than the epoch of every earlier term. Nodes share only the store. Processes may stop at any point and
// continue later, or never. Requests and replies may be lost, late, or both, and requests may overtake each other. Clocks may run at
// slightly different speeds, and their wall time is not used at all.
//
// # Responsibilities
//
//	elector     when to ask, lead, stop, release and cool down; that the work has
//	            returned before the lock is released
//	heartbeat   the trust window: when to renew, when to stop, when to die
//	a Lock      which node may win, under which epoch: reservation, pause, priority,
//	            quarantine (redislock: with scripts, and the same without scripts)
//	quorum      one Lock made of N stores
//	AnyOf       one Lock made of N slots
//	LeadFunc    that no part of the work goes on after LeadFunc has returned
//	databases   that a deposed leader's transaction does not commit (the fence)
//
// # States
//
//	           ctx ends (give back a lock that may be ours)
//	     ┌──────────────────────────────────────────────► end
//	     │
//	┌────┴────┐  held, wait, refused,  ┌─────────┐
//	│ standby │ ◄───── unknown ─────── │ attempt │ ──┐ won too late: give it back,
//	│         │ ── wait over, hint ──► │         │ ◄─┘ ask as another owner
//	└─────────┘                        └────┬────┘
//	  ▲     ▲                               │ won, and trusted still
//	  │     │ time over, or another         ▼
//	  │     │ node has led             ┌─────────┐
//	  │ ┌───┴───┐                      │ leading │ ◄─┐ renewed
//	  │ │cooling│                      └──┬───┬──┘ ──┘
//	  │ └───────┘                         │   │ ordered to step down, shutting down,
//	  │     ▲               work returned │   │ soft stop passed, lease lost
//	  │     │ stepped down,  unasked      │   ▼
//	  │     │ abdicated                   │ ┌─────────┐
//	┌─┴─────┴─┐                           │ │stopping │ ◄─┐ renewed: the lease is kept
//	│conclude │ ◄─────────────────────────┘ └─┬──┬────┘ ──┘ until the work has returned
//	│ release │ ◄─────────────────────────────┘  │ hard stop passed
//	└────┬────┘       work has returned          ▼
//	     └─► end, if ctx has ended              Die
//
// campaign implements standby, cooling and attempt, and runTerm implements the other states: attend waits for the work, keep renews the
// lease at the same time, and the window's Guard watches both.
//
// # The answers to an attempt
//
//   - Won: lead, unless the answer came too late to start any work.
//   - Held: wait for the rest of the lease and 5 ms, for the poll interval, or for a hint. A hint
//     says that the lock was released, or that hints cease or are back. While this node receives
//     hints ([Config]'s Hinted), polls are only needed for lost hints, and wait for three
//     intervals, at most 8 s. Other programs give no hints, so their locks are polled as if there
//     were no hints. A foreign holder has no name and no epoch.
//   - Wait: no client holds the lock, and we may not have it. [EventWaiting] says why: the lock is
//     reserved for the named successor (at most [ReserveFor]), left to a live node of a higher
//     priority (half a second: that node may be dead), paused (until resumed; only a poll or a hint
//     ends the wait), in quarantine (see below), or we are an observer, or deferring (see "The
//     delay before a free lock").
//   - Refused ([ErrRefused]): the request was not applied. Unknown (any other error): the request
//     may have been applied, or may be applied later. In both cases: pause for 100 ms to 5 s and
//     less than a lease, and ask again as the same owner, without an end.
//   - [ErrSpent]: the lock has taken back its grant, and the release is still in progress. The
//     release would also delete a later grant, so ask again as another owner. The lease of the
//     first owner, if there is one, runs out.
//
// # What fails, and what then
//
// While asking:
//
//   - The reply to an acquire is lost: the same owner asks again and receives the answer that it
//     has won, under the same epoch. If we stop instead, the lock is given back.
//   - The reply to an acquire is late: trust counts from the sending of the request. If too little
//     time is left to start any work, the lock is given back.
//   - An acquire arrives after all of this, even after its own release: the lock is held by no
//     term, until that one lease has ended.
//   - The store is away: attempts go on. Trouble is reported when it begins, again if it turns into
//     trouble of another kind that lasts, and when it is over.
//   - A hint is lost, doubled or false: only polls are reliable. A lost hint delays the attempt
//     until the next poll, never longer than the rest of the lease. A named successor that missed
//     its hint comes too late, and the lock may be free for a while. Forged hints cause an attempt
//     every 20 ms, a renewal every 50 ms, and nothing else.
//
// While leading:
//
//   - A renewal is unanswered: the window does not move; ask again at once. When the soft stop
//     passes, the work is cancelled. Renewals go on, so that a drain does not outlive its lease if
//     the store comes back.
//   - A renewal is answered "not yours" ([ErrLost]): the work is cancelled now. The lock is not
//     released, because it belongs to another node.
//   - The hard stop passes and work goes on: the process dies. A database rolls back the half-done
//     work, or rejects it because of its epoch.
//   - The hard stop passes and the term is idle ([Term.Begin]): the process had no processor time
//     for the renewal or for the end of the work, or the LeadFunc still records the end of its work.
//     No work begins any more, and the term ends as expired.
//   - The process was stopped (SIGSTOP, suspend) beyond its hard stop: after waking, the guard runs
//     before the store's answer is handled. The window is closed, the work gets a quarter of a
//     second to return, and then Die is called. A paused VM behaves in the same way if its boot
//     clock continues or is set on waking. Otherwise nothing here can notice the pause, and only
//     the epoch in the databases protects the data.
//   - The lease has expired: it is never renewed again, even if the store would renew it. The owner
//     is deleted from the store if it is still there, and the next term has a new owner.
//   - The observer hangs (its log is not read any more): the work is cancelled first, and Die does
//     not wait for the observer. If the window closes while the win is being reported, no work
//     begins.
//   - The work panics: the process ends, except for panics that the LeadFunc recovers.
//
// While ending:
//
//   - The release fails at once (a cut connection): it is tried once more. If the release is not
//     answered, the lease runs out, and the end is reported as not Released.
//   - The release is answered late: its owner is never used again.
//   - The lease is lost or expires during a drain: the term ends as lost or expired.
//   - The process crashes: the lease runs out, unless a process that has seen it die
//     deletes its owner (`baton release --crashed`, by the lease file).
//
// When the store has forgotten (a restart, a failover, FLUSHALL, an eviction):
//
//   - A leader that the store has forgotten may still trust its lease. So no new leader wins for
//     the time of one lease: this time is the quarantine. The quarantine ends early if the leader
//     renews: inside its window the leader restores its lock, unless another node has won since. A
//     renewal that was sent before the accident restores nothing.
//   - These signs show the accident: the incarnation of the store differs from the incarnation that
//     wrote the term; a lock is gone before a lease that a standby has seen can have ended; or a
//     candidate knows of an epoch ([Candidate]'s Floor), but the store knows of none.
//   - To a candidate that also knows of no epoch the lock is new, so this candidate wins at once. A
//     running node remembers the epochs that it has seen. A daemon also reads its state directory,
//     otherwise its databases, when it starts. `baton lock` has no such source.
//   - The accident does not show if the data was replaced in a store that continues under the same
//     name. (It became a replica of a master that lagged, and then a master again, without a
//     request in between.) Then only the epoch in the databases protects the data.
//   - The store is an old master without replicas that still acknowledges writes: wait_replicas or
//     a quorum helps, otherwise only the epoch in the databases protects the data.
//
// # Handing over
//
// An order ([Order]: step down, perhaps in favour of a node; a pause is also an order) comes with the answer to a renewal, and a hint
// only makes that renewal come at once. The work ends, the lock is released and perhaps reserved, and this node cools down: it
// continues to ask, but as an observer. After a step-down the cool-down lasts until another node has led, which a higher epoch shows,
// or for a little more than a poll interval. So a node without others then leads again. If the first answer already shows that another
// node has led, the next attempt follows at once. After an [Abdication] the cool-down lasts for the time in the Abdication, even if
// others have led since, or until the node that abdicated ends it. Work that returns before the term had to end is a step-down, unless
// the election ends with it ([ErrDone]). A shutdown, a loss and an expiry cause no cool-down. A leader that gets two orders steps down
// once.
//
// # The delay before a free lock
//
// A node that leads more than its share of several locks leaves a free lock to others for a moment ([Config]'s AcquireDelay, at most
// half a second). So work spreads without a coordinator. The node asks as a deferring candidate: a named successor still wins, and
// other deferring candidates get the answer that the lock is free. The delay counts from that answer. When the delay is over and the
// lock is still free, we ask for the lock. A lock that is held, paused, in quarantine or reserved for another node is not free: the
// delay begins after that, and a held lock is polled as usual. Renewals have no delay.
//
//   - The others are dead, or do not want the lock: the lock stays free for the time of the delay,
//     once.
//   - The others also defer: the node with the shortest delay wins, or a node wins by chance.
//   - A hint comes during the delay: we ask again, and the delay continues. It ends early if
//     AcquireDelay returns less than before, for example after the death of other nodes.
//   - The store is away during the delay: the delay also continues.
//   - We die during the delay: we held no lock.
//   - AcquireDelay answers from an old state: work is spread worse, and nothing else happens.
//     AcquireDelay decides when we ask, never which node may win.
//
// # Epochs
//
// The lock assigns the epochs: above its stored epoch and above the candidate's Floor, and from its clock in milliseconds if the lock
// may have forgotten epochs. The Floor is the highest epoch that this process has seen, including the epoch of every Held and Wait
// (except a quorum's Wait, see package quorum). Before that it is the Floor of [Config]. If a database knows a higher epoch than the
// term's epoch, [Term.Raise] lifts the term's epoch above it, or finds that the lock is lost.
//
// # Other candidates and locks
//
//   - An observer (candidate: false) asks only to learn the leader. It never wins, even if there is
//     no other node.
//   - Several electors in one process share a [heartbeat.Beat] and a connection: their renewals are
//     sent at the same moments, in one round trip. An error of the connection costs each elector
//     one attempt. A process makes only one lock for a key.
//   - A semaphore is [AnyOf] its slots, and each slot is an election of its own. If the answer of a
//     slot is missing, the elector asks this slot again before any other slot. So an owner never
//     has two slots, except if an acquire arrives later than all of this. A slot's epoch says
//     nothing about the epochs of the other slots. One elector leads only one term of a semaphore,
//     because its next term would bring the first slot's epoch to the second slot.
//   - A quorum is a Lock like any other Lock, but if all candidates ask at the same moment, its
//     masters are divided among them: [Config]'s HintSpread spreads the attempts of the nodes that
//     received the same hint. A candidate may win under another owner than its own: [Answer]'s
//     Owner.
//
// # What does not depend on this package
//
// That an epoch is never given twice is a promise of the lock. That a deposed leader's transaction does not commit is a promise of the
// databases. This package only makes it unlikely that these promises are needed.
package elector
