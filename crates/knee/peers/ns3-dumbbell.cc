// ns-3 dumbbell for `knee bench peers` (Debian package libns3-dev). It prints the packets that arrived.
// ns3-dumbbell --n=FLOWS --rate=MBPS --rtt=MS --q=PKTS --dur=S
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/applications-module.h"
#include "ns3/traffic-control-module.h"
using namespace ns3;
int main(int argc,char**argv){
 std::string cc="TcpLinuxReno"; uint32_t n=16; double rate=100, rtt=40; uint32_t q=333; double dur=60;
 CommandLine cmd; cmd.AddValue("cc","",cc); cmd.AddValue("n","",n); cmd.AddValue("rate","",rate); cmd.AddValue("rtt","",rtt); cmd.AddValue("q","",q); cmd.AddValue("dur","",dur); cmd.Parse(argc,argv);
 Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::"+cc));
 Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
 Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1<<26));
 Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1<<26));
 NodeContainer R; R.Create(2); NodeContainer S,D; S.Create(n); D.Create(n);
 InternetStackHelper st; st.Install(R); st.Install(S); st.Install(D);
 PointToPointHelper b; b.SetDeviceAttribute("DataRate",DataRateValue(DataRate(rate*1e6))); b.SetChannelAttribute("Delay",TimeValue(MilliSeconds(rtt/2))); b.SetQueue("ns3::DropTailQueue","MaxSize",StringValue(std::to_string(q)+"p"));
 PointToPointHelper a; a.SetDeviceAttribute("DataRate",StringValue("1Gbps")); a.SetChannelAttribute("Delay",StringValue("10us")); a.SetQueue("ns3::DropTailQueue","MaxSize",StringValue("100000p"));
 Ipv4AddressHelper ad; TrafficControlHelper tch;
 auto rd=b.Install(R); ad.SetBase("10.0.0.0","255.255.255.0"); ad.Assign(rd); tch.Uninstall(rd);
 ApplicationContainer sinks;
 for(uint32_t i=0;i<n;i++){ auto x=a.Install(S.Get(i),R.Get(0)); char buf[32]; sprintf(buf,"10.1.%u.0",i); ad.SetBase(buf,"255.255.255.0"); ad.Assign(x); tch.Uninstall(x);
  auto y=a.Install(R.Get(1),D.Get(i)); sprintf(buf,"10.2.%u.0",i); ad.SetBase(buf,"255.255.255.0"); auto ip=ad.Assign(y); tch.Uninstall(y);
  PacketSinkHelper sk("ns3::TcpSocketFactory",InetSocketAddress(Ipv4Address::GetAny(),5000)); sinks.Add(sk.Install(D.Get(i)));
  BulkSendHelper bs("ns3::TcpSocketFactory",InetSocketAddress(ip.GetAddress(1),5000)); auto app=bs.Install(S.Get(i)); app.Start(Seconds(0.1*i/n)); }
 Ipv4GlobalRoutingHelper::PopulateRoutingTables();
 Simulator::Stop(Seconds(dur)); Simulator::Run();
 double tot=0; for(uint32_t i=0;i<n;i++) tot+=DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
 printf("delivered pkts %.0f\n", tot/1448);
}
