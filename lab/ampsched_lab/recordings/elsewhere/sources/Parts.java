import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** A pool of four threads: 64 parts of uneven length. */
public class Parts {
    static long part(int number) {
        long value = number;
        for (int round = 0; round < 2_000_000 + 500_000 * (number % 5); round++) {
            value = value * 6364136223846793005L + 1442695040888963407L ^ value >>> 17;
        }
        return value;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> parts = new ArrayList<>();
        for (int number = 0; number < 64; number++) {
            final int own = number;
            parts.add(pool.submit(() -> part(own)));
        }
        long sum = 0;
        for (Future<Long> part : parts) {
            sum += part.get();
        }
        pool.shutdown();
        System.out.println(sum);
    }
}
