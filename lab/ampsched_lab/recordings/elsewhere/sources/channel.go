// Four goroutines that work on what a channel hands out.
package main

import (
	"fmt"
	"sync"
)

func part(number int) uint64 {
	value := uint64(number)
	for round := 0; round < 2_000_000+500_000*(number%5); round++ {
		value = (value*6364136223846793005 + 1442695040888963407) ^ value>>17
	}
	return value
}

func main() {
	numbers, results := make(chan int), make(chan uint64, 64)
	var workers sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for number := range numbers {
				results <- part(number)
			}
		}()
	}
	for number := 0; number < 64; number++ {
		numbers <- number
	}
	close(numbers)
	workers.Wait()
	close(results)
	sum := uint64(0)
	for result := range results {
		sum += result
	}
	fmt.Println(sum)
}
