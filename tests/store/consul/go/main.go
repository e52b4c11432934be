// Locks and semaphores of Consul by Go's own client, for tests in which it contends with trinco.
//
//	consul-interop ADDRESS TTL
//
// Reads commands from its input, a line each, and answers in lines. WHO is any word: a contender
// with a session of its own, which carries out its commands one after another. KEY is the lock's
// key itself, PREFIX that of a semaphore. A session's lock-delay is 1 s.
//
//	WHO lock KEY                    "WHO locked KEY SESSION" when it has the lock
//	WHO try KEY                     the same, or "WHO taken"
//	WHO unlock KEY                  "WHO unlocked"
//	WHO remove KEY                  deletes what is left of it: "WHO removed", or "WHO in use"
//	WHO visit KEY TIMES FOLDER      locks and unlocks so often, counts, and looks for others: "WHO
//	                                visited"
//	WHO time KEY                    locks and unlocks: "WHO took NANOSECONDS"
//	WHO enter PREFIX LIMIT          "WHO entered PREFIX" when it is one of that many
//	WHO attempt PREFIX LIMIT        the same, or "WHO taken"
//	WHO leave PREFIX                "WHO left"
//	WHO stay PREFIX LIMIT TIMES FOLDER
//	                                enters and leaves so often, and counts who is in: "WHO stayed"
//	WHO destroy                     ends the session behind its own back: "WHO destroyed"
//
// Who loses what it holds says "WHO lost KEY". What fails is "WHO failed WHY". At the end of the
// input all sessions end.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
)

const longestQueue = 100 // of commands that one contender has still to carry out

type answers struct {
	mutex sync.Mutex
}

func (a *answers) say(who string, words ...any) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	fmt.Println(append([]any{who}, words...)...)
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "consul-interop:", why)
	os.Exit(2)
}

func main() {
	if len(os.Args) != 3 {
		fail("usage: consul-interop ADDRESS TTL")
	}
	ttl, err := strconv.Atoi(os.Args[2])
	if err != nil || ttl < 1 {
		fail("TTL is a number of seconds, at least 1, and not " + os.Args[2])
	}
	configuration := api.DefaultConfig()
	configuration.Address = os.Args[1]
	client, err := api.NewClient(configuration)
	if err != nil {
		fail(err)
	}
	serve(client, time.Duration(ttl)*time.Second)
}

// Until the input ends, and all sessions have ended.
func serve(client *api.Client, ttl time.Duration) {
	var running sync.WaitGroup
	out := &answers{}
	stop := make(chan struct{})
	queues := map[string]chan []string{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		who := words[0]
		queue, known := queues[who]
		if !known {
			queue = make(chan []string, longestQueue)
			queues[who] = queue
			running.Add(1)
			go func() {
				defer running.Done()
				contend(stop, who, queue, out, client, ttl)
			}()
		}
		queue <- words[1:]
	}
	close(stop)
	for _, queue := range queues {
		close(queue)
	}
	running.Wait()
}
