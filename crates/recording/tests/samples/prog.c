#include <pthread.h>
#include <unistd.h>
#include <stdio.h>
#include <sys/wait.h>
#include <sys/prctl.h>
static int up[2], down[2];
static volatile unsigned long sink;
static void work(unsigned long n){for(unsigned long i=0;i<n;i++)sink+=i;}
static void *worker(void *unused){(void)unused;prctl(PR_SET_NAME,"worker");char c;
 while(read(up[0],&c,1)==1&&c!='q'){work(200000);if(write(down[1],&c,1)!=1)break;}
 return 0;}
int main(void){pthread_t t;char c='a';
 if(pipe(up)||pipe(down))return 1;
 pthread_create(&t,0,worker,0);
 for(int i=0;i<15;i++){work(100000);if(write(up[1],&c,1)!=1)return 1;if(read(down[0],&c,1)!=1)return 1;}
 usleep(3000);
 c='q';if(write(up[1],&c,1)!=1)return 1;
 pthread_join(t,0);
 if(fork()==0){prctl(PR_SET_NAME,"child");work(2000000);_exit(0);}
 int s;wait(&s);
 return 0;}
