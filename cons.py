import sys
from pathlib import Path
from ampsched import api
from ampsched._core import work_ns
from ampsched.catalog import Catalog
from ampsched.recording.imports import import_file
from ampsched.recording.files import save
c=Catalog.shipped()
for name in ('juno','snapdragon-855','snapdragon-865','pixel'):
    m=c.machine(name); n=m.cores; co=m.cluster_of_core
    for k,(cl,ct,cores,mhz,cls) in enumerate(m.clusters):
        core=co.index(k)
        f=m.frequencies_mhz(k)
        for clock in (f[0],f[-1]):
            t=f'''t7-7 [{core:03}] d..2 1.000000: cpu_frequency: state={clock*1000} cpu_id={core}
t0-0 [{core:03}] d..2 1.000000: sched_switch: prev_comm=t0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=t7 next_pid=7 next_prio=120
t7-7 [{core:03}] d..2 1.100000: sched_switch: prev_comm=t7 prev_pid=7 prev_prio=120 prev_state=X ==> next_comm=t0 next_pid=0 next_prio=120
'''
            p=Path('cons.txt'); p.write_text(t)
            r=import_file(p,traced=m); save(r,Path('cons.ampr'))
            w=sum(work_ns(r))/1e6
            part=name+''.join(f':{x[0]}=0' for j,x in enumerate(m.clusters) if j!=k)+f':{cl}=1@{clock}'
            try:
                for sp in ('',f':speedup={1/min(m.energy_model(j)[-1][1]/1024 for j in range(len(m.clusters))):.3f}'):
                    o=api.simulate(part,f'cons.ampr{sp}','linux')
                    print(name,cl,clock,'MHz work %.1f'%w,sp or 'ferret','CPU in replay %.1f ms of 100'%(sum(x.busy_ns for x in o.cores)/1e6))
            except Exception as e: print(part,e)
