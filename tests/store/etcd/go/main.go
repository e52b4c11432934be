// Locks and elections of etcd by Go's own client, for tests in which it contends with trinco.
//
//	etcd-interop ENDPOINTS TTL
//
// Reads commands from its input, a line each, and answers in lines. WHO is any word: a contender
// with a session of its own, which carries out its commands one after another.
//
//	WHO lock NAME                   "WHO locked KEY REVISION" when it has the lock
//	WHO try NAME                    the same, or "WHO taken"
//	WHO unlock NAME                 "WHO unlocked"
//	WHO visit NAME TIMES FOLDER     locks and unlocks so often, with a look for others: "WHO visited"
//	WHO time NAME                   locks and unlocks: "WHO took NANOSECONDS"
//	WHO campaign NAME VALUE         "WHO leads KEY REVISION"
//	WHO resign NAME                 "WHO resigned"
//	WHO observe NAME                "WHO sees VALUE" for each leader, until the end
//
// What fails is "WHO failed WHY". At the end of the input all sessions are closed.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
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
	fmt.Fprintln(os.Stderr, "etcd-interop:", why)
	os.Exit(2)
}

func main() {
	if len(os.Args) != 3 {
		fail("usage: etcd-interop ENDPOINTS TTL")
	}
	ttl, err := strconv.Atoi(os.Args[2])
	if err != nil || ttl < 1 {
		fail("TTL is a number of seconds, at least 1, and not " + os.Args[2])
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(os.Args[1], ","),
		DialTimeout: 5 * time.Second,
	})
	if err != nil {
		fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	serve(ctx, cancel, client, ttl)
	client.Close()
}

// Until the input ends, and all sessions are closed.
func serve(ctx context.Context, cancel func(), client *clientv3.Client, ttl int) {
	var running sync.WaitGroup
	out := &answers{}
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
				contend(ctx, who, queue, out, client, ttl)
			}()
		}
		queue <- words[1:]
	}
	cancel()
	for _, queue := range queues {
		close(queue)
	}
	running.Wait()
}
